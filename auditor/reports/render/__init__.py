"""Write documents as files and pages; knows no topic."""
