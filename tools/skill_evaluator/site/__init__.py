"""The site: static pages of finished values, which open from the file system and from a server alike."""
