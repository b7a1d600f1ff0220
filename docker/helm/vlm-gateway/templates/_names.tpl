{{/* Names, labels and numbers that several objects share. */}}

{{- define "gateway.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains "vlm-gateway" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-vlm-gateway" (.Release.Name | trunc 28 | trimSuffix "-") }}
{{- end -}}
{{- end -}}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: vlm-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "gateway.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- define "gateway.secret" -}}
{{ .Values.secret.name | default (include "gateway.name" .) }}
{{- end -}}

{{- define "gateway.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "gateway.name" .) "default" .Values.serviceAccount.create) }}
{{- end -}}

{{- define "gateway.policiesConfigMap" -}}
{{- if .Values.existingPoliciesConfigMap -}}
{{ .Values.existingPoliciesConfigMap }}
{{- else if .Values.policies -}}
{{ include "gateway.name" . }}-policies
{{- end -}}
{{- end -}}

{{/* gateway.yaml, with the policies' folder where there are any. */}}
{{- define "gateway.config" -}}
{{- $config := deepCopy (.Values.config | default dict) -}}
{{- if include "gateway.policiesConfigMap" . -}}
{{- $_ := set $config "policies" "policies" -}}
{{- end -}}
{{- if and .Values.discovery.enabled (not $config.sources) -}}
{{- fail "discovery.enabled: config.sources names no Service, such as {url: kubernetes:///vllm}" -}}
{{- end -}}
{{- if not (or $config.backends $config.sources) -}}
{{- fail "config: names no engine: give config.backends or config.sources" -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}

{{- define "gateway.policyText" -}}
{{- if kindIs "string" . -}}
{{ . }}
{{- else -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{/* Settling, draining and a margin, in whole seconds. */}}
{{- define "gateway.graceSeconds" -}}
{{- $server := (.Values.config | default dict).server | default dict -}}
{{- $settle := .Values.drain.settleSeconds -}}
{{- $drain := .Values.drain.timeoutSeconds -}}
{{- if not .Values.existingConfigSecret -}}
{{- $settle = get $server "settle_s" | default $settle -}}
{{- $drain = get $server "drain_timeout_s" | default $drain -}}
{{- end -}}
{{ add (ceil $settle) (ceil $drain) (ceil .Values.drain.marginSeconds) }}
{{- end -}}

{{- define "gateway.scaleBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  selectPolicy: Max
  policies:
    - type: Pods
      value: 2
      periodSeconds: 30
    - type: Percent
      value: 100
      periodSeconds: 30
scaleDown:
  stabilizationWindowSeconds: 300
  policies:
    - type: Pods
      value: 1
      periodSeconds: 60
{{- end -}}
