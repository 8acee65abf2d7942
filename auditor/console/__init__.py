"""What commands share: options, output in text and JSON, and progress; commands of probes import it, too."""
