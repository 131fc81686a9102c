"""The stories of `judge score`, `judge pairwise` and `judge regression`: what is asked, by one judge or several."""
