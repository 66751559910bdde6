"""Where the cluster is: a kubeconfig file, or the service account of the pod that this runs in."""

import logging
import os
from pathlib import Path

import urllib3
import yaml
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.config.config_exception import ConfigException

from service.errors import ConfigurationError
from service.kubernetes.api import KubernetesApi

log = logging.getLogger(__name__)

IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
CONNECTIONS = 8


def connect(kubeconfig: Path | None = None, context: str | None = None) -> KubernetesApi:
    """The API of the cluster that `kubeconfig` names, else of the one this runs in, else of the usual kubeconfig.

    Raises:
        ConfigurationError: there is none, or it is not readable.
    """
    settings = Configuration()
    # Tries, and how long to wait between them, are the caller's.
    settings.retries = False
    settings.connection_pool_maxsize = CONNECTIONS
    try:
        if kubeconfig is None and os.environ.get(IN_CLUSTER):
            config.load_incluster_config(client_configuration=settings)
        else:
            config.load_kube_config(
                None if kubeconfig is None else str(kubeconfig), context, client_configuration=settings
            )
    except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigurationError(f"no Kubernetes cluster to talk to: {' '.join(str(error).split())[:300]}") from None
    if not settings.verify_ssl:
        log.warning("the kubeconfig says that the cluster's certificate is not to be checked: %s", settings.host)
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # said once, not with each request
    client = ApiClient(settings)
    client.user_agent = "faultline"
    return KubernetesApi(client)
