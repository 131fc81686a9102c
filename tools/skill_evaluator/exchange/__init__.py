"""Results of other tools in, tables and JUnit XML out."""
