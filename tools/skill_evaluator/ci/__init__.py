"""The steps of CI: plan the jobs of a push, collect their results, and publish the records."""
