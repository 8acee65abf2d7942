"""Documents about single answers: a page for each cell, and the page that lists them."""
