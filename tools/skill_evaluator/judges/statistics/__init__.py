"""The statistics of judges: one idea a file, numbers in, numbers out."""
