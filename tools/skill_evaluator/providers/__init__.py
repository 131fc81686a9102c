"""One file a vendor; `kinds.PROVIDERS` lists them."""
