"""What the judge commands do: the tasks of each mode, the calls of judges, calibration and drafts."""
