from service.contracts.kubernetes_name import KubernetesName, kubernetes_name


def test_a_job_id_of_kubernetes_is_the_full_name_of_an_object() -> None:
    name = KubernetesName("ml", "PyTorchJob", "train")
    assert str(name) == f"{name}" == "ml/PyTorchJob/train"
    assert kubernetes_name(str(name)) == name


def test_job_ids_of_other_schedulers_name_no_object() -> None:
    assert kubernetes_name("123_4") is None
    assert kubernetes_name("cluster/123") is None
