"""Connects to a cluster by a kubeconfig file or by the service account of the pod that this process runs in."""

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
    """Connect to the cluster of `kubeconfig`, else the cluster this runs in, else that of the default kubeconfig.

    Raises:
        ConfigurationError: there is no configuration, or it is not readable.
    """
    settings = Configuration()
    # The caller decides on retries and the pauses between them.
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
        raise ConfigurationError(f"no usable Kubernetes configuration: {' '.join(str(error).split())[:300]}") from None
    if not settings.verify_ssl:
        log.warning("the kubeconfig disables the verification of the cluster's certificate: %s", settings.host)
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # the service warns once, not per request
    client = ApiClient(settings)
    client.user_agent = "faultline"
    return KubernetesApi(client)
