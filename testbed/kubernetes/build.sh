# Builds Kubernetes' servers out of Debian's source package, in a chroot with Go 1.15: newer ones read maps otherwise than the
# reflection library that 1.20 vendors.
set -euo pipefail
cd /root
export PATH=/usr/lib/go-1.15/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CGO_ENABLED=0
mkdir source
tar -xf kubernetes_*.orig.tar.* -C source --strip-components=1
cd source
export GOPATH=$PWD/.go
mkdir -p .go/src/k8s.io
ln -s ../../.. .go/src/k8s.io/kubernetes
cat >/root/version <<'VERSION'
KUBE_GIT_COMMIT='debian'
KUBE_GIT_TREE_STATE='clean'
KUBE_GIT_VERSION='v1.20.2'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
VERSION
export KUBE_GIT_VERSION_FILE=/root/version
make WHAT="cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler cmd/kubelet" GOLDFLAGS="-s -w"
mkdir /root/out
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
    cp "$(find _output/ -type f -name $program | head -n 1)" /root/out/
done
