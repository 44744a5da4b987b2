"""For protocols that commit by renames: files renamed, set aside, taken out again and brought back."""
