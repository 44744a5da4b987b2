"""What protocols share whose task attempts write into the destination, under the names that the files keep."""
