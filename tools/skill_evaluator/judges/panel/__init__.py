"""Several judges of one judging reduced to one verdict, with what they disagree on."""
