"""The cluster as a whole: what is served (ApiVersions), who serves it, what lies on its disks, telemetry; and what its
operators change of it: leaders, places of replicas, features, brokers that are gone for good.

Whoever is asked, changes are decided by the active controller.
"""
