"""Is a version worse than the recorded one, where, and how sure is that?"""
