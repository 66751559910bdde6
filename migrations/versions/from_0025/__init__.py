"""The schema changes from revision 0025 on."""
