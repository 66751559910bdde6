from job import Job


def fault(job):
    if job.how == "collections":
        from collections import Mapping

        return Mapping
    if job.how == "numpy":
        from numpy import float_ as real

        return real
    if job.how == "sklearn":
        from sklearn.utils import check_matplotlib_support, if_delegate_has_method

        return check_matplotlib_support, if_delegate_has_method
    if job.how == "yaml":
        from yaml import UnsafeLoder

        return UnsafeLoder
    if job.how == "circular":
        import models

        return models.Encoder
    if job.how == "package":
        from requests.packages.urllib3.util.ssl_ import DEFAULT_CIPHERS

        return DEFAULT_CIPHERS
    if job.how == "typing":
        from typing import Overridable

        return Overridable
    return None


Job().run(fault)
