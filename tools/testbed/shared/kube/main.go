// Command kube is the whole Kubernetes control plane, kubelet, kubeadm, kubectl and etcd in one binary.
//
// The testbed links one name per component to it; the name it was called by (or its first argument) picks the component.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func(){
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() { run(kubeproxy.NewProxyCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kubeadm":                 kubeadmRun,
	"kubectl":                 kubectlRun,
	"etcd":                    func() { etcdmain.Main(os.Args) },
}

func run(command *cobra.Command) { os.Exit(cli.Run(command)) }

func kubeadmRun() {
	if err := kubeadm.Run(); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func kubectlRun() {
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	component, found := components[name]
	if !found && len(os.Args) > 1 {
		name = os.Args[1]
		component, found = components[name]
		os.Args = os.Args[1:]
	}
	if !found {
		names := make([]string, 0, len(components))
		for known := range components {
			names = append(names, known)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "kube: call it by the name of a component or give one as first argument: %v\n", names)
		os.Exit(2)
	}
	component()
}
