"""The regression judge: is a candidate output worse than the baseline, dimension by dimension, and may it ship?"""
