"""Make calls to models: their schedule, engines, limits, prices, budget and journal."""
