"""What a fit leaves: factors, their certificate, and the file that holds them."""
