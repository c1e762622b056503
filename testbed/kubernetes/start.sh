# Runs in the cluster's machine: etcd, Kubernetes' control plane, containerd and a kubelet.   start.sh ADDRESS
set -euo pipefail
address=$1 log=/kubernetes/log own=/run/kubernetes
mkdir -p $own /etc/cni/net.d /var/lib/kubelet /var/lib/containerd /var/lib/etcd /var/log/pods
for directory in /var/lib/kubelet /var/lib/containerd /var/lib/etcd; do mount -t tmpfs tmpfs $directory; done # no overlay on overlay
mount --make-rshared /

fake() { # the kubelet sets these for the whole machine: it is shown files that have what it wants, and writes nothing
    local file=/run/fake/${1//\//_}
    mkdir -p /run/fake
    echo "$2" >"$file"
    mount --bind "$file" "/proc/sys/$1"
}
fake vm/overcommit_memory 1
fake vm/panic_on_oom 0
fake kernel/panic 10
fake kernel/panic_on_oops 1
fake kernel/keys/root_maxkeys 1000000
fake kernel/keys/root_maxbytes 25000000

openssl genrsa -out $own/sa.key 2048 2>/dev/null
openssl rsa -in $own/sa.key -pubout -out $own/sa.pub 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout $own/api.key -out $own/api.crt -days 30 -subj /CN=kubernetes \
    -addext "subjectAltName=IP:$address,IP:10.96.0.1,DNS:kubernetes,DNS:localhost" 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout $own/clients.key -out $own/clients.crt -days 30 -subj /CN=clients 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout $log/carol.key -out $own/carol.csr -subj /CN=carol 2>/dev/null
openssl x509 -req -in $own/carol.csr -CA $own/clients.crt -CAkey $own/clients.key -CAcreateserial -out $log/carol.crt -days 30 2>/dev/null
cp "$log/tokens.csv" $own/tokens.csv
token() { grep ",$1," $own/tokens.csv | cut -d, -f1; }
config() { # NAME USER
    cat >$own/$1.conf <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$address:6443", certificate-authority: $own/api.crt}}]
users: [{name: u, user: {token: $(token "$2")}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
CONFIG
}
config admin admin
config kubelet system:node:node1
cp $own/admin.conf /root/.kubeconfig
cp $own/api.crt $log/ca.crt

etcd --data-dir /var/lib/etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync >$log/etcd.log 2>&1 &
kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address="$address" --advertise-address="$address" --secure-port=6443 \
    --tls-cert-file=$own/api.crt --tls-private-key-file=$own/api.key --client-ca-file=$own/clients.crt \
    --token-auth-file=$own/tokens.csv --authorization-mode=Node,RBAC \
    --service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://kubernetes \
    --service-account-signing-key-file=$own/sa.key --service-account-key-file=$own/sa.pub \
    --allow-privileged=true --kubelet-preferred-address-types=InternalIP >$log/apiserver.log 2>&1 &
cat >/run/containerd.toml <<'CONFIG'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
CONFIG
cat >/etc/cni/net.d/10-pods.conflist <<'CONFIG'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
CONFIG
containerd --config /run/containerd.toml >$log/containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for image in /kubernetes/images/*.tar; do ctr -n k8s.io images import "$image" >/dev/null; done
export KUBECONFIG=$own/admin.conf
until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.1; done
kube-controller-manager --kubeconfig=$own/admin.conf --service-account-private-key-file=$own/sa.key --root-ca-file=$own/api.crt \
    --leader-elect=false --bind-address=127.0.0.1 --node-monitor-grace-period=60s >$log/controller-manager.log 2>&1 &
kube-scheduler --kubeconfig=$own/admin.conf --leader-elect=false --bind-address=127.0.0.1 >$log/scheduler.log 2>&1 &
cat >/run/kubelet.yaml <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failSwapOn: false
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
address: $address
resolvConf: ""
syncFrequency: 5s
nodeStatusUpdateFrequency: 4s
maxPods: 60
oomScoreAdj: 0
CONFIG
kubelet --config=/run/kubelet.yaml --kubeconfig=$own/kubelet.conf --container-runtime=remote \
    --container-runtime-endpoint=unix:///run/containerd/containerd.sock --hostname-override=node1 --node-ip="$address" \
    --root-dir=/var/lib/kubelet --v=1 >$log/kubelet.log 2>&1 &
until kubectl get node node1 2>/dev/null | grep -q ' Ready '; do sleep 0.2; done
touch $log/ready
wait
