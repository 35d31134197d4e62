{{/* The figures of the profile, or what the values say instead. */}}
{{- define "readygate.agent.figures" -}}
{{- $profiles := dict
  "default" (dict "checkPeriodSeconds" 10 "checkFailureThreshold" 3 "probePeriodSeconds" 2 "probeFailureThreshold" 2)
  "fast" (dict "checkPeriodSeconds" 2 "checkFailureThreshold" 2 "probePeriodSeconds" 1 "probeFailureThreshold" 2) -}}
{{- $figures := get $profiles .Values.agent.profile -}}
{{- range $key := keys $figures -}}
{{- $own := get $.Values.agent $key -}}
{{- if not (kindIs "invalid" $own) -}}{{- $_ := set $figures $key $own -}}{{- end -}}
{{- end -}}
{{- toYaml $figures -}}
{{- end -}}

{{/* The agent's configuration file. */}}
{{- define "readygate.agent.settings" -}}
{{- $agent := .Values.agent -}}
{{- $figures := include "readygate.agent.figures" . | fromYaml -}}
{{- $given := list -}}
{{- if $agent.cni.check -}}
{{- $binDirs := list -}}
{{- range $agent.cni.binDirs -}}{{- $binDirs = append $binDirs (printf "/host%s" .) -}}{{- end -}}
{{- $cni := dict "confDir" (printf "/host%s" $agent.cni.confDir) "binDirs" $binDirs -}}
{{- $given = append $given (dict "name" "cni" "cni" $cni "severity" "gate") -}}
{{- end -}}
{{- $given = concat $given $agent.checks -}}
{{- if not $given -}}{{- fail "there must be at least one check: agent.cni.check or agent.checks" -}}{{- end -}}
{{- if and $agent.heartbeat (not (and $agent.publishCondition $agent.admissionPolicy)) -}}
{{- fail "agent.heartbeat needs agent.publishCondition and agent.admissionPolicy: without them an agent could write any Lease here" -}}
{{- end -}}
{{- $checks := list -}}
{{- range $given -}}
{{- $base := dict "periodSeconds" $figures.checkPeriodSeconds "failureThreshold" $figures.checkFailureThreshold -}}
{{- $checks = append $checks (include "readygate.joined" (list $base .) | fromYaml) -}}
{{- end -}}
{{- toYaml (dict
  "mode" "pod"
  "listen" (dict "address" "::" "port" 9375)
  "log" (dict "level" $agent.logLevel)
  "kubernetes" (dict "server" (.Values.kubernetes.server | default nil))
  "checks" $checks
  "stateFile" "/state/checks.json"
  "condition" (dict "publish" $agent.publishCondition)) -}}
{{- end -}}

{{/* Folders of the host that are mounted. The parent of the configuration folder, not the folder: a mount follows the
     folder when somebody moves it away, and that is the very fault to be seen. */}}
{{- define "readygate.agent.mounts" -}}
{{- $agent := .Values.agent -}}
{{- $mounts := list -}}
{{- if $agent.cni.check -}}{{- $mounts = concat (list (dir $agent.cni.confDir)) $agent.cni.binDirs -}}{{- end -}}
{{- toYaml (concat $mounts $agent.hostPaths | uniq) -}}
{{- end -}}

{{/* Named by its content: agents of an earlier version keep the configuration they were made with. */}}
{{- define "readygate.agent.config" -}}
{{ include "readygate.agent" . }}-{{ printf "%s\n" (include "readygate.agent.settings" .) | sha256sum | trunc 10 }}
{{- end -}}

{{/* Root while the CNI is checked: Calico, Cilium and hardened hosts write its configuration with mode 0600. */}}
{{- define "readygate.agent.user" -}}
{{- if kindIs "invalid" .Values.agent.runAsUser -}}{{ ternary 0 69375 .Values.agent.cni.check }}
{{- else -}}{{ .Values.agent.runAsUser | int64 }}
{{- end -}}
{{- end -}}
