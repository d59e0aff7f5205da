"""What is asked about share groups: by their members of group coordinators and of the brokers that lead partitions, by
operators, and by brokers of the share coordinators that keep their state.
"""
