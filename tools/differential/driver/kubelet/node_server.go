// The API server of a history's making: one Node, held as a patch leaves it.
package kubelet

import (
	"context"
	"encoding/json"
	"errors"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientset "k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

type nodeServer struct {
	node    *v1.Node
	object  map[string]any // node, as a patch takes it; nil where it was not patched yet
	faults  map[string][]string
	patches int
}

func (s *nodeServer) fault(kind string) error {
	given := s.faults[kind]
	if len(given) == 0 {
		return nil
	}
	s.faults[kind] = given[1:]
	group := schema.GroupResource{Resource: "nodes"}
	switch given[0] {
	case "ok":
		return nil
	case "forbidden":
		return apierrors.NewForbidden(group, thisNode, nil)
	case "conflict":
		return apierrors.NewConflict(group, thisNode, nil)
	default:
		return apierrors.NewInternalError(errors.New("away"))
	}
}

func (s *nodeServer) put(node *v1.Node) { s.node, s.object = node, nil }

func (s *nodeServer) held() (*v1.Node, error) {
	if s.node == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, thisNode)
	}
	return s.node.DeepCopy(), nil
}

type heldNodes struct {
	corev1.NodeInterface
	*nodeServer
}

type lister struct {
	corelisters.NodeLister
	*nodeServer
}

// What the lister has is as new as what the server has.
func (n lister) Get(string) (*v1.Node, error) { return n.held() }

func (n heldNodes) Get(context.Context, string, metav1.GetOptions) (*v1.Node, error) {
	if err := n.fault("get"); err != nil {
		return nil, err
	}
	return n.held()
}

func (n heldNodes) Create(_ context.Context, node *v1.Node, _ metav1.CreateOptions) (*v1.Node, error) {
	if err := n.fault("create"); err != nil {
		return nil, err
	}
	if n.node != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "nodes"}, thisNode)
	}
	n.put(node.DeepCopy())
	return n.held()
}

func (n heldNodes) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*v1.Node, error) {
	if err := n.fault("patch"); err != nil {
		return nil, err
	}
	if n.object == nil {
		old, err := json.Marshal(n.node)
		if err != nil {
			return nil, err
		}
		if err := utiljson.Unmarshal(old, &n.object); err != nil {
			return nil, err
		}
	}
	change := map[string]any{}
	if err := utiljson.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	object, err := strategicpatch.StrategicMergeMapPatch(n.object, change, v1.Node{})
	if err != nil {
		return nil, err
	}
	n.object = object
	var patched v1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &patched); err != nil {
		return nil, err
	}
	n.patches++
	n.node = &patched
	return n.held()
}

type nodeClient struct {
	clientset.Interface
	*nodeServer
}

type nodeCore struct {
	corev1.CoreV1Interface
	*nodeServer
}

func (c nodeClient) CoreV1() corev1.CoreV1Interface { return nodeCore{nodeServer: c.nodeServer} }
func (c nodeCore) Nodes() corev1.NodeInterface      { return heldNodes{nodeServer: c.nodeServer} }
