// Whether a kubelet's managers take a plugin, by its name and its versions.
package drivers

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	dra "k8s.io/kubernetes/pkg/kubelet/cm/dra/plugin"
)

// Answer tells the version of a driver of volumes that counts, "" for none; whether a driver of devices may have the
// name; and whether a driver of resource claims is taken.
func Answer(raw json.RawMessage) (any, error) {
	var given struct {
		Name     string   `json:"name"`
		Versions []string `json:"versions"`
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	said := map[string]any{
		"volumes": "",
		"devices": v1helper.IsExtendedResourceName(v1.ResourceName(given.Name)),
		"claims":  (&dra.DRAPluginManager{}).ValidatePlugin(given.Name, "", given.Versions) == nil,
	}
	if highest, err := utilversion.HighestSupportedVersion(given.Versions); err == nil {
		said["volumes"] = strings.SplitN(highest.String(), "-", 2)[0]
	}
	return said, nil
}
