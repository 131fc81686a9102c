"""A cheap judge first, a strong one for what it leaves open, and people for the rest."""
