{{/* The container's environment: what the pod decides and not gateway.yaml. */}}
{{- define "gateway.environment" -}}
- name: VLMGW_SERVER_HOST
  value: 0.0.0.0
- name: VLMGW_SERVER_PORT
  value: "8080"
- name: VLMGW_SERVER_ADMIN_HOST
  value: 0.0.0.0
- name: VLMGW_SERVER_ADMIN_PORT
  value: "9464"
- name: VLMGW_ADMIN_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "gateway.secret" . }}
      key: admin-token
- name: VLMGW_IDENTITY_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ include "gateway.secret" . }}
      key: identity-secret
{{- /* Of none the downward API makes 0, with which the gateway does not start. */}}
{{- if dig "requests" "cpu" (dig "limits" "cpu" "" (.Values.resources | default dict)) (.Values.resources | default dict) }}
- name: VLMGW_MEDIA_WORKERS
  valueFrom:
    resourceFieldRef:
      resource: requests.cpu
      divisor: "1"
{{- end }}
{{- with .Values.redis }}
{{- if .enabled }}
- name: VLMGW_REDIS_URL
  value: {{ .url | quote }}
{{- if ne .mode "standalone" }}
- name: VLMGW_REDIS_MODE
  value: {{ .mode }}
{{- end }}
{{- with .username }}
- name: VLMGW_REDIS_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- if .passwordSecret }}
- name: VLMGW_REDIS_PASSWORD_FILE
  value: /etc/vlm-gateway-redis/password/password
{{- end }}
{{- if .caConfigMap }}
- name: VLMGW_REDIS_TLS_CA_FILE
  value: /etc/vlm-gateway-redis/ca/ca.crt
{{- end }}
- name: VLMGW_REDIS_MIN_REPLICAS
  value: {{ ternary $.Values.replicaCount $.Values.autoscaling.minReplicas (eq $.Values.autoscaling.by "off") | int | quote }}
{{- end }}
{{- end }}
{{- if .Values.tls.secretName }}
- name: VLMGW_SERVER_TLS_CERT_FILE
  value: /etc/vlm-gateway-tls/tls.crt
- name: VLMGW_SERVER_TLS_KEY_FILE
  value: /etc/vlm-gateway-tls/tls.key
{{- end }}
{{- range .Values.extraEnv }}
{{- if has .name (list "VLMGW_SERVER_SETTLE_S" "VLMGW_SERVER_DRAIN_TIMEOUT_S" "VLMGW_SERVER_PORT" "VLMGW_SERVER_ADMIN_PORT" "VLMGW_SERVER_PROCESSES") }}
{{- fail (printf "extraEnv: %s: the pod's ports and grace period would not follow; see config.server and drain" .name) }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
