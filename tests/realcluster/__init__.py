"""A real Kubernetes as plain processes, for tests: nothing that users of the package need.

Genuine etcd, kube-apiserver, kube-scheduler, kube-controller-manager, kubelet, containerd, runc and Karpenter;
simulated kubelets (kwok) where the number of nodes matters more than what runs on them. All in namespaces of their own
(network, mounts, processes) below one process, whose end ends all of it.
"""
