"""What can go wrong between a request and its answer, as KafkaErrors, so that one table decides about all retries."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError


class Disconnected(KafkaError):
    """The connection broke, or could not be made. Whether a request in flight was carried out is unknown."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class Refused(Disconnected):
    """Nobody listens there: the machine itself said so. No request was sent."""


class TimedOut(KafkaError):
    """No answer by the deadline. Whether the request was carried out is unknown."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class UnsupportedVersion(KafkaError):
    """We and the broker share no version of this API; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


class Violation(KafkaError):
    """The peer does not follow the protocol; the connection is of no more use."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class AuthenticationFailed(KafkaError):
    """The broker does not believe us, or we do not believe the broker. Asking again would not change that."""

    def __init__(
        self, place: str, mechanism: str, cause: str, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED
    ) -> None:
        super().__init__(code, f"{place}: authentication by {mechanism} failed: {cause}")
        self.place = place
        self.mechanism = mechanism
        """of SASL, or TLS."""
        self.cause = cause


class InvalidSecurity(KafkaError):
    """Security settings that cannot be followed; the text names them, and never holds a secret."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, message)


def error_code(number: int) -> ErrorCode:
    """A code from the wire; one that we do not know yet counts as UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(number: int, message: str | None, what: str) -> None:
    """Raise the error that an answer carries, naming `what` was refused."""
    if number:
        code = error_code(number)
        raise KafkaError(code, f"{what}: {message or code.name}")
