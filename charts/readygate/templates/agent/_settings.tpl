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

{{/* Whether the agent on the node writes heartbeats: "true", or nothing. */}}
{{- define "readygate.agent.heartbeat" -}}
{{- $agent := .Values.agent -}}
{{- $confined := and $agent.publishCondition $agent.admissionPolicy -}}
{{- if kindIs "invalid" $agent.heartbeat -}}
{{- if and $confined (eq $agent.speaker "node") -}}true{{- end -}}
{{- else if $agent.heartbeat -}}
{{- if not $confined -}}
{{- fail "agent.heartbeat needs agent.publishCondition and agent.admissionPolicy: without them an agent could write any Lease here" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* The agent's configuration file. */}}
{{- define "readygate.agent.settings" -}}
{{- $agent := .Values.agent -}}
{{- $figures := include "readygate.agent.figures" . | fromYaml -}}
{{- $given := list -}}
{{- if $agent.cni.check -}}
{{- $binDirs := list -}}
{{- range $agent.cni.binDirs -}}{{- $binDirs = append $binDirs (printf "/host%s" .) -}}{{- end -}}
{{- $cni := dict "confDir" (printf "/host%s" $agent.cni.confDir) "binDirs" $binDirs "runtime" "auto" -}}
{{- $given = append $given (dict "name" "cni" "cni" $cni "severity" "gate") -}}
{{- end -}}
{{- $given = concat $given $agent.checks -}}
{{- if $agent.reader.enabled -}}
{{- $given = append $given (dict "name" "reader" "reader" (dict "port" 9378) "periodSeconds" 1 "failureThreshold" 1) -}}
{{- end -}}
{{- $names := list -}}{{- range $given -}}{{- $names = append $names .name -}}{{- end -}}
{{- if ne (len $names) (len (uniq $names)) -}}
{{- fail (printf "each check must have a name of its own, and cni and reader are those of the chart: %s" (join ", " $names)) -}}
{{- end -}}
{{- if not (or $given $agent.checkProfile) -}}{{- fail "there must be at least one check: agent.cni.check, agent.checkProfile or agent.checks" -}}{{- end -}}
{{- $_ := include "readygate.agent.heartbeat" . -}}
{{- $checks := list -}}
{{- range $given -}}
{{- $base := dict "periodSeconds" $figures.checkPeriodSeconds "failureThreshold" $figures.checkFailureThreshold -}}
{{- $checks = append $checks (include "readygate.joined" (list $base .) | fromYaml) -}}
{{- end -}}
{{- $profile := dict -}}
{{- if $agent.checkProfile -}}
{{- $leaveOut := ternary $agent.leaveOut (append $agent.leaveOut "cni") $agent.cni.check -}}
{{- $profile = dict "profile" (dict "name" $agent.checkProfile "leaveOut" $leaveOut
  "periodSeconds" $figures.checkPeriodSeconds "failureThreshold" $figures.checkFailureThreshold) -}}
{{- else if $agent.leaveOut -}}{{- fail "agent.leaveOut is of agent.checkProfile, which is not set" -}}
{{- end -}}
{{- toYaml (merge $profile (dict
  "mode" "pod"
  "listen" (dict "address" "::" "port" 9375)
  "log" (dict "level" $agent.logLevel)
  "kubernetes" (dict "server" (.Values.kubernetes.server | default nil))
  "checks" $checks
  "stateFile" "/state/checks.json"
  "condition" (dict "publish" $agent.publishCondition))) -}}
{{- end -}}

{{/* The configuration file of the reader: what of the ready-made list a pod leaves out, and checks of its own. */}}
{{- define "readygate.agent.reader" -}}
{{- $agent := .Values.agent -}}
{{- $figures := include "readygate.agent.figures" . | fromYaml -}}
{{- $file := .Files.Get "files/profiles.json" | fromJson -}}
{{- $given := list -}}
{{- if $agent.checkProfile -}}
{{- $list := get $file.node $agent.checkProfile -}}
{{- range $name := list "certificates" "kernel-log" "pressure" -}}
{{- if and (hasKey $list $name) (not (has $name $agent.leaveOut)) -}}
{{- $check := deepCopy (get $list $name) -}}
{{- if eq $name "pressure" -}}
{{- $check = dict "name" "pod-threads" "severity" $check.severity
  "pressure" (dict "look" (list "podThreads") "cgroup" "/host/sys/fs/cgroup") -}}
{{- end -}}
{{- $given = append $given $check -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $given = concat $given $agent.reader.checks -}}
{{- if not $given -}}{{- fail "agent.reader needs checks: agent.checkProfile or agent.reader.checks" -}}{{- end -}}
{{- $checks := list -}}
{{- range $given -}}
{{- $base := dict "periodSeconds" $figures.checkPeriodSeconds "failureThreshold" $figures.checkFailureThreshold -}}
{{- $checks = append $checks (include "readygate.joined" (list $base .) | fromYaml) -}}
{{- end -}}
{{- toYaml (dict
  "mode" "pod"
  "listen" (dict "address" "::" "port" 9378)
  "log" (dict "level" $agent.logLevel)
  "checks" $checks
  "stateFile" "/state/reader.json") -}}
{{- end -}}

{{/* What checks take: of the host reads, writes, root; and whether they ask other agents (peers). The CNI's folders are those of agent.cni. Checks of your own take the
     folders below /host that their settings name, and their nodes must have them: `own`. */}}
{{- define "readygate.agent.taken" -}}
{{- $agent := .Values.agent -}}
{{- $reads := list -}}{{- $writes := list -}}{{- $root := false -}}{{- $peers := false -}}
{{- $file := .Files.Get "files/profiles.json" | fromJson -}}
{{- range $check := $agent.checks -}}
{{- range $kind, $rights := $file.rights -}}
{{- if hasKey $check $kind -}}
{{- $settings := get $check $kind | default dict -}}
{{- $root = or $root $rights.root -}}
{{- $peers = or $peers $rights.peers -}}
{{- range $access := list "reads" "writes" -}}
{{- range $key := get $rights $access -}}
{{- $value := get $settings $key -}}
{{- range $path := ternary $value (list $value) (kindIs "slice" $value) -}}
{{- if and (kindIs "string" $path) (hasPrefix "/host/" $path) -}}
{{- $folder := trimPrefix "/host" (ternary (dir $path) $path (has $key $file.parents)) -}}
{{- if eq $access "reads" -}}{{- $reads = append $reads $folder -}}{{- else -}}{{- $writes = append $writes $folder -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $own := concat $reads $writes | uniq -}}
{{- if $agent.checkProfile -}}
{{- $left := append $agent.leaveOut "cni" -}}
{{- range $check := $agent.checks -}}{{- range $kind := $file.kinds -}}
{{- if hasKey $check $kind -}}{{- $left = append $left $check.name -}}{{- end -}}
{{- end -}}{{- end -}}
{{- range $name, $needs := get $file.pod $agent.checkProfile -}}
{{- if not (has $name $left) -}}
{{- $reads = concat $reads $needs.reads -}}{{- $writes = concat $writes $needs.writes -}}
{{- $root = or $root $needs.root -}}
{{- $peers = or $peers $needs.peers -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "reads" (uniq $reads) "writes" (uniq $writes) "root" $root "peers" (default false $peers) "own" $own) -}}
{{- end -}}

{{/* Folders of the host that are mounted. The parent of the configuration folder, not the folder: a mount follows the
     folder when somebody moves it away, and that is the very fault to be seen. */}}
{{- define "readygate.agent.mounts" -}}
{{- $agent := .Values.agent -}}
{{- $mounts := list -}}
{{- if $agent.cni.check -}}{{- $mounts = concat (list (dir $agent.cni.confDir)) $agent.cni.binDirs -}}{{- end -}}
{{- $taken := include "readygate.agent.taken" . | fromYaml -}}
{{- toYaml (concat $mounts $agent.hostPaths $taken.reads $taken.writes | uniq) -}}
{{- end -}}

{{/* All that agents are configured with. */}}
{{- define "readygate.agent.content" -}}
{{ printf "%s\n" (include "readygate.agent.settings" .) }}
{{- if .Values.agent.reader.enabled }}{{ printf "%s\n" (include "readygate.agent.reader" .) }}{{ end }}
{{- end -}}

{{/* Named by its content: agents of an earlier version keep the configuration they were made with. */}}
{{- define "readygate.agent.config" -}}
{{ include "readygate.agent" . }}-{{ include "readygate.agent.content" . | sha256sum | trunc 10 }}
{{- end -}}

{{/* Root while the CNI is checked, whose configuration Calico, Cilium and hardened hosts write with mode 0600, and
     where the ready-made list takes it. */}}
{{- define "readygate.agent.user" -}}
{{- if kindIs "invalid" .Values.agent.runAsUser -}}{{ ternary 0 69375 (or .Values.agent.cni.check (include "readygate.agent.taken" . | fromYaml).root) }}
{{- else -}}{{ .Values.agent.runAsUser | int64 }}
{{- end -}}
{{- end -}}
