"""Check a component: how its fields are compared, hints, and what is wrong with it."""
