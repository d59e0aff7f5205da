"""What members of share groups ask of the brokers that lead their partitions: records, and what becomes of them."""
