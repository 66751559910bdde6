{{/* Permissions in all namespaces, or in each listed one. */}}
{{- define "faultline.rights" -}}
{{- $whole := printf "%s-%s" .root.Release.Namespace .name }}
{{- $parts := .parts }}
{{- $root := .root }}
{{- $name := .name }}
{{- $rules := .rules }}
{{- if not .namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $whole }}
  labels: {{- include "faultline.labels" $parts | nindent 4 }}
rules: {{- $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $whole }}
  labels: {{- include "faultline.labels" $parts | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $whole }} }
subjects: [{ kind: ServiceAccount, name: {{ $name }}, namespace: {{ $root.Release.Namespace }} }]
{{- end }}
{{- range .namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $whole }}
  namespace: {{ . }}
  labels: {{- include "faultline.labels" $parts | nindent 4 }}
rules: {{- $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $whole }}
  namespace: {{ . }}
  labels: {{- include "faultline.labels" $parts | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $whole }} }
subjects: [{ kind: ServiceAccount, name: {{ $name }}, namespace: {{ $root.Release.Namespace }} }]
{{- end }}
{{- end }}
