"""Who is asking, and what they may do: principals, operations on resources, the authorizer.

Doors: `principals.Principal`, `acl` (operations and resource types as the protocol has them), `authorizer.Authorizer`.
It decides, it never answers: a handler turns a refusal into the error code of its API.
"""
