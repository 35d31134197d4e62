// The API server of a history's making: one Node, held as a patch leaves it.
package kubelet

import (
	"encoding/json"
	"errors"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientset "k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

var nodes = schema.GroupResource{Resource: "nodes"}

type server struct {
	node    *v1.Node
	faults  map[string][]string
	patches int
}

func (s *server) fault(kind string) error {
	given := s.faults[kind]
	if len(given) == 0 {
		return nil
	}
	s.faults[kind] = given[1:]
	switch given[0] {
	case "ok":
		return nil
	case "forbidden":
		return apierrors.NewForbidden(nodes, thisNode, nil)
	case "conflict":
		return apierrors.NewConflict(nodes, thisNode, nil)
	}
	return apierrors.NewInternalError(errors.New("away"))
}

func (s *server) held() (*v1.Node, error) {
	if s.node == nil {
		return nil, apierrors.NewNotFound(nodes, thisNode)
	}
	return s.node.DeepCopy(), nil
}

type client struct {
	clientset.Interface
	*server
}

type group struct {
	corev1.CoreV1Interface
	*server
}

type heldNodes struct {
	corev1.NodeInterface
	*server
}

func (c client) CoreV1() corev1.CoreV1Interface { return group{server: c.server} }
func (g group) Nodes() corev1.NodeInterface     { return heldNodes{server: g.server} }

// Get from the cache of the API server cannot fail.
func (n heldNodes) Get(_ string, options metav1.GetOptions) (*v1.Node, error) {
	if options.ResourceVersion != "0" {
		if err := n.fault("get"); err != nil {
			return nil, err
		}
	}
	return n.held()
}

func (n heldNodes) Create(node *v1.Node) (*v1.Node, error) {
	if err := n.fault("create"); err != nil {
		return nil, err
	}
	if n.node != nil {
		return nil, apierrors.NewAlreadyExists(nodes, thisNode)
	}
	n.node = node.DeepCopy()
	return n.held()
}

func (n heldNodes) Patch(_ string, _ types.PatchType, patch []byte, _ ...string) (*v1.Node, error) {
	if err := n.fault("patch"); err != nil {
		return nil, err
	}
	before, err := json.Marshal(n.node)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, v1.Node{})
	if err != nil {
		return nil, err
	}
	n.patches++
	n.node = &v1.Node{}
	if err := json.Unmarshal(after, n.node); err != nil {
		return nil, err
	}
	return n.held()
}
