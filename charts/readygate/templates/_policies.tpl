{{/* Expressions that several admission policies share. */}}

{{/* A write of a status may change one entry of `conditions`. The list of all other conditions is compared as a whole: an
     entry that is doubled, dropped, moved or renamed is a difference. dyn() compares all fields, including those that later
     versions of Kubernetes add. */}}
{{- define "readygate.policy.status.variables" -}}
- name: status
  expression: "has(object.status) ? dyn(object.status) : dyn({})"
- name: oldStatus
  expression: "has(oldObject.status) ? dyn(oldObject.status) : dyn({})"
- name: metadata
  expression: "dyn(object.metadata)"
- name: oldMetadata
  expression: "dyn(oldObject.metadata)"
- name: own
  expression: >-
    has(object.status) && has(object.status.conditions)
    ? object.status.conditions.filter(c, c.type == '{{ include "readygate.condition" . }}') : []
- name: foreign
  expression: >-
    has(object.status) && has(object.status.conditions)
    ? object.status.conditions.filter(c, c.type != '{{ include "readygate.condition" . }}') : []
- name: oldForeign
  expression: >-
    has(oldObject.status) && has(oldObject.status.conditions)
    ? oldObject.status.conditions.filter(c, c.type != '{{ include "readygate.condition" . }}') : []
{{- end -}}

{{- define "readygate.policy.status.rest" -}}
variables.status.all(key, key == 'conditions'
|| (key in variables.oldStatus && variables.status[key] == variables.oldStatus[key]))
&& variables.oldStatus.all(key, key == 'conditions' || key in variables.status)
{{- end -}}

{{/* Argument: how many characters the message may have, the most that the program writes. */}}
{{- define "readygate.policy.condition.bounds" -}}
variables.own.size() <= 1
&& variables.own.all(c, c.status in ['True', 'False', 'Unknown']
&& c.?reason.orValue('').size() <= 64 && c.?message.orValue('').size() <= {{ . }})
{{- end -}}

{{/* Argument: a list of more keys of the metadata that may differ. The API server writes the first two itself. Entries of
     server-side apply must not differ: the next apply of a manager removes each field that a forged entry gives it. */}}
{{- define "readygate.policy.metadata" -}}
{{- $free := concat (list "managedFields" "resourceVersion") . | toJson | replace "\"" "'" -}}
variables.metadata.all(key, key in {{ $free }}
|| (key in variables.oldMetadata && variables.metadata[key] == variables.oldMetadata[key]))
&& variables.oldMetadata.all(key, key in {{ $free }} || key in variables.metadata)
&& object.metadata.?managedFields.orValue([]).filter(m, m.?operation.orValue('') == 'Apply')
== oldObject.metadata.?managedFields.orValue([]).filter(m, m.?operation.orValue('') == 'Apply')
{{- end -}}

{{/* Requests that the policies of the namespace always allow. Controllers act on objects that a user was allowed to write;
     kubelets create mirror pods and tokens for their own pods. */}}
{{- define "readygate.policy.cluster" -}}
request.userInfo.username == 'system:kube-controller-manager'
|| (has(request.userInfo.groups) && request.userInfo.groups.exists(group,
group in ['system:nodes', 'system:serviceaccounts:kube-system']))
{{- end -}}
{{- define "readygate.policy.deployer" -}}
authorizer.group('').resource('serviceaccounts').namespace(request.namespace).name('{{ include "readygate.extender" . }}').check('use').allowed()
{{- end -}}
