"""The website of a prompt library: static pages that open from the file system and from any server."""
