"""The findings of an audit: the result of each model, the regimes, and warnings."""
