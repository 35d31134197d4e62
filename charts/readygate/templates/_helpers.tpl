{{/* Names. Namespaced objects have fixed ones, so a second release in one namespace is refused by Helm itself; what the
     whole cluster sees carries the release's. */}}
{{- define "readygate.fullname" -}}
{{- if contains "readygate" .Release.Name -}}{{ .Release.Name }}{{- else -}}{{ .Release.Name }}-readygate{{- end -}}
{{- end -}}
{{/* Helm takes dots in the name of a release, and a name of Kubernetes has none before a dash. */}}
{{- define "readygate.short" -}}{{ regexReplaceAll "[-.]+$" (include "readygate.fullname" . | trunc 40) "" }}{{- end -}}
{{- define "readygate.agent" -}}readygate-agent{{- end -}}
{{- define "readygate.extender" -}}readygate-extender{{- end -}}
{{- define "readygate.agent.cluster" -}}{{ include "readygate.short" . }}-agent{{- end -}}
{{- define "readygate.extender.cluster" -}}{{ include "readygate.short" . }}-extender{{- end -}}
{{- define "readygate.operator" -}}{{ include "readygate.short" . }}-operator{{- end -}}
{{- define "readygate.sweep.cluster" -}}{{ include "readygate.short" . }}-sweep{{- end -}}

{{/* As spelled in kube/contract.py and extender/outlets/kick.py; a test compares them. */}}
{{- define "readygate.condition" -}}readygate.dev/NodeHealthy{{- end -}}
{{- define "readygate.kick" -}}readygate.dev/kick{{- end -}}
{{- define "readygate.leases" -}}kube-node-lease{{- end -}}

{{/* Where kube-scheduler asks the extender. The default is here too: `helm upgrade --reuse-values` from a chart that did not
     know the value leaves it out. */}}
{{- define "readygate.extender.port" -}}{{ .Values.extender.port | default 338 | int }}{{- end -}}
{{/* Below 1024 root alone may take it; see listen.user. */}}
{{- define "readygate.extender.privileged" -}}{{ if lt (include "readygate.extender.port" . | int) 1024 }}true{{ end }}{{- end -}}

{{- define "readygate.extender.scheme" -}}{{ ternary "http" "https" (empty .Values.extender.tlsSecret) }}{{- end -}}

{{- define "readygate.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: readygate
{{- end -}}

{{- define "readygate.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is needed, as your nodes pull it: registry.example/readygate" $image.repository -}}
{{- if $image.digest -}}{{ $repository }}@{{ $image.digest }}
{{- else -}}{{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "readygate.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* [base, over] -> base with what over says; mappings are joined, all else is replaced, also by null, false and 0. */}}
{{- define "readygate.joined" -}}
{{- $base := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- $before := get $base $key -}}
{{- if and (hasKey $base $key) (kindIs "map" $value) (kindIs "map" $before) -}}
{{- $_ := set $base $key (include "readygate.joined" (list $before $value) | fromYaml) -}}
{{- else -}}
{{- $_ := set $base $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $base -}}
{{- end -}}
