"""Actions of people on their own accounts: a new password."""

from service.db.session import Store
from service.errors import Conflict, FieldError, InvalidInput, TooManyRequests, Unavailable
from service.people import passwords
from service.people.login_limits import RETRY_AFTER_S, LoginAttempts
from service.people.repository.accounts import Account


def change_password(store: Store, account: Account, *, address: str, current: str, new: str, keep: str) -> int:
    """Replace the password of a person who knows the current one, and end the person's other sessions.

    Args:
        store: the database. A wrong current password counts as a failed login.
        account: the account of the person.
        address: the address of the client.
        current: the current password.
        new: the new password.
        keep: the secret of the session that stays.

    Returns:
        The number of sessions that ended.

    Raises:
        Conflict: the account has no password, or the password was changed in the meantime.
        InvalidInput: the current password is wrong, or the new one is not acceptable; no message contains them.
        TooManyRequests: too many wrong passwords.
        Unavailable: too many passwords are being checked.
    """
    with store.reading() as reading:
        known = reading.accounts.credentials(account.name)
    if known is None or known.password is None:
        raise Conflict("this account has no password here: its identity provider or proxy checks it")
    attempts = LoginAttempts(store)
    attempt = attempts.start(address, account.name)
    if attempt is None:
        raise TooManyRequests("too many wrong passwords: try again in five minutes", RETRY_AFTER_S)
    correct: bool | None = False
    try:
        correct = passwords.verify(known.password, current)
    except Unavailable:
        correct = None
        raise
    finally:
        attempts.finish(attempt, succeeded=correct)
    if not correct:
        raise _refused("current_password", "the current password of this account")
    if new == current:
        raise _refused("new_password", "a password that differs from the current one")
    try:
        stored = passwords.hash_password(new, account.name)
    except InvalidInput as error:
        raise _refused("new_password", error.errors[0].expected) from None
    with store.unit_of_work() as work:
        if not work.accounts.replace_password(account.id, known.password, stored):
            raise Conflict("the password was changed in the meantime")
        ended = work.sessions.end_others(account.id, keep)
        after = {"address": address, "sessions_ended": ended}
        work.audit_log.append(account.name, "password.changed", f"account/{account.name}", after=after)
    return ended


def _refused(field: str, expected: str) -> InvalidInput:
    return InvalidInput(f"{field}: expected {expected}", (FieldError(field, expected),))
