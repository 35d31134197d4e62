{{/* What the extender is given: the defaults of this deployment, joined with `extender.configuration`. A gate that names
     no health pods goes by the agents of this release. */}}
{{- define "readygate.extender.given" -}}
{{- $name := include "readygate.agent" . -}}
{{- $ours := dict "namespace" .Release.Namespace "labelSelector" (printf "app.kubernetes.io/name=%s" $name) "daemonSet" $name -}}
{{- $own := .Values.extender.configuration.listen | default dict -}}
{{- if or (hasKey $own "port") (hasKey $own "user") -}}
{{- fail "extender.configuration.listen: port and user follow from extender.port, which also decides what the extender starts as: set that" -}}
{{- end -}}
{{- if eq (include "readygate.extender.port" .) "9377" -}}
{{- fail "extender.port: the status API listens at 9377, choose another port" -}}
{{- end -}}
{{- if eq (include "readygate.extender.port" .) "9379" -}}
{{- fail "extender.port: Prometheus scrapes at 9379, choose another port" -}}
{{- end -}}
{{- if hasKey .Values.extender.configuration "metrics" -}}
{{- fail "extender.configuration.metrics: set extender.metrics.address, and leave this out" -}}
{{- end -}}
{{- if hasKey (.Values.extender.configuration.statusApi | default dict) "port" -}}
{{- fail "extender.configuration.statusApi.port: probes and monitors of this chart ask port 9377, leave it out" -}}
{{- end -}}
{{- if ne (.Values.extender.configuration.namespace | default .Release.Namespace) .Release.Namespace -}}
{{- fail "extender.configuration.namespace: orders, Lease and rights are in the release's namespace, leave it out" -}}
{{- end -}}
{{- $listen := dict "address" "127.0.0.1" "port" (include "readygate.extender.port" . | int) -}}
{{- if include "readygate.extender.privileged" . -}}{{- $_ := set $listen "user" 69376 -}}{{- end -}}
{{- if .Values.extender.tlsSecret -}}
{{- $folder := "/etc/readygate-tls" -}}
{{- $_ := set $listen "tls" (dict
  "certificate" (printf "%s/tls.crt" $folder) "key" (printf "%s/tls.key" $folder) "clientCA" (printf "%s/ca.crt" $folder)) -}}
{{- end -}}
{{- $statusApi := dict "address" "127.0.0.1" "moreAddresses" (list) "port" 9377 "sharesPort" true -}}
{{- with .Values.extender.statusApi.address -}}{{- $_ := set $statusApi "moreAddresses" (list .) -}}{{- end -}}
{{- $metrics := dict -}}
{{- with .Values.extender.metrics.address -}}{{- $metrics = dict "metrics" (dict "address" . "port" 9379) -}}{{- end -}}
{{- $base := merge $metrics (dict
  "listen" $listen
  "feed" (dict "socket" "/run/readygate/feed/socket")
  "statusApi" $statusApi
  "kubernetes" (dict "server" (.Values.kubernetes.server | default nil))
  "mode" "protect"
  "namespace" .Release.Namespace
  "gates" (list (dict) (dict "name" "starts" "severity" "warn" "healthPods" nil "podStarts" (dict)))) -}}
{{- if include "readygate.agent.heartbeat" . -}}{{- $_ := set $base "heartbeat" (dict "agents" (dict "limitSeconds" 9)) -}}{{- end -}}
{{- $given := include "readygate.joined" (list $base .Values.extender.configuration) | fromYaml -}}
{{- $gates := list -}}
{{- range $given.gates -}}
{{- $gate := dict "enforcement" $.Values.enforcement "healthPods" $ours -}}
{{- $gates = append $gates (include "readygate.joined" (list $gate (omit . "healthPods")) | fromYaml) -}}
{{- if hasKey . "healthPods" -}}{{- $_ := set (last $gates) "healthPods" .healthPods -}}{{- end -}}
{{- end -}}
{{- $_ := set $given "gates" $gates -}}
{{- toYaml $given -}}
{{- end -}}

{{/* The extender's configuration file. */}}
{{- define "readygate.extender.settings" -}}
{{- include "readygate.extender.given" . -}}
{{- end -}}

{{/* Named by its content: extenders of an earlier version keep the configuration they were made with. Helm takes that one
     away with the upgrade; told to keep it (`helm.sh/resource-policy`) `helm rollback` fails: it is there and not Helm's. */}}
{{- define "readygate.extender.config" -}}
{{ include "readygate.extender" . }}-{{ printf "%s\n" (include "readygate.extender.settings" .) | sha256sum | trunc 10 }}
{{- end -}}

{{/* What it reads and writes, so what it needs the rights for. */}}
{{- define "readygate.extender.needs" -}}
{{- $given := include "readygate.extender.given" . | fromYaml -}}
{{- $orders := "readygate-orders" -}}
{{- with $given.orders -}}{{- if hasKey . "configMap" -}}{{- $orders = .configMap | default "" -}}{{- end -}}{{- end -}}
{{- range $name := list (include "readygate.agent" .) (include "readygate.extender" .) -}}
{{- if hasPrefix $name $orders -}}
{{- fail (printf "extender.configuration.orders.configMap: operators may not write a ConfigMap whose name begins with %s, choose another" $name) -}}
{{- end -}}
{{- end -}}
{{- $condition := dig "outlets" "nodeCondition" "enabled" true $given -}}
{{- $events := dig "outlets" "events" "enabled" true $given -}}
{{- $agents := dig "heartbeat" "agents" dict $given -}}
{{- $drivers := false -}}
{{- $devices := false -}}
{{- $starts := false -}}
{{- $pods := dict -}}
{{- $daemonSets := dict -}}
{{- range $given.gates -}}
{{- if dig "for" "csiDrivers" false . -}}{{- $drivers = true -}}{{- end -}}
{{- if dig "for" "deviceClasses" false . -}}{{- $devices = true -}}{{- end -}}
{{- range dig "for" "resources" list . -}}{{- if contains "/" . -}}{{- $devices = true -}}{{- end -}}{{- end -}}
{{- if kindIs "map" .podStarts -}}{{- $starts = true -}}{{- end -}}
{{- with .healthPods -}}
{{- $_ := set $pods .namespace true -}}
{{- if .daemonSet -}}{{- $_ := set $daemonSets .namespace true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $namespaces := list -}}
{{- if or $orders $condition $events $agents -}}{{- $namespaces = append $namespaces .Release.Namespace -}}{{- end -}}
{{- $namespaces = concat $namespaces (list (include "readygate.leases" .)) (keys $pods | sortAlpha) | uniq -}}
{{- toYaml (dict "orders" $orders "agents" (not (not $agents)) "condition" $condition "events" $events "drivers" $drivers "devices" $devices "starts" $starts "pods" $pods
  "daemonSets" $daemonSets "namespaces" $namespaces) -}}
{{- end -}}
