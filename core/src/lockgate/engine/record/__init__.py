"""What is written down of a job, and read by others: its record and who holds it, its marker, its end, its transaction,
what it replaces, its summary; and the jobs beside it."""
