"""The error of a diagnostic file that is not of its kind."""


class NotDiagnostic(ValueError):
    """The text does not have the format of its kind; the text of the error gives the reason."""
