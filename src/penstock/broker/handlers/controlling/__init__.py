"""What brokers and other controllers ask of the active controller: registrations, heartbeats, ISR changes, envelopes.

Served on the controller's listener only. A controller that is not active refuses with NOT_CONTROLLER, and the asker
goes to the one that is.
"""
