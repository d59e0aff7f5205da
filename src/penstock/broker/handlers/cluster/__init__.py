"""The cluster as a client sees it: what is served (ApiVersions), who serves it, what lies on its disks, telemetry.

They read the image and the table, and change nothing but what telemetry remembers of a client.
"""
