"""The scores of an audit, model by scenario by benchmark, and the tables they are read from."""
