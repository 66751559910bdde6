{{/* Common parts of the objects: names, labels, pod security, and the settings of the service. */}}

{{- define "faultline.name" -}}
{{- if contains "faultline" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-faultline" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "faultline.selector" -}}
app.kubernetes.io/name: faultline
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "faultline.labels" -}}
{{ include "faultline.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "faultline.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Pod settings: unprivileged user, read-only root file system. Service links are disabled, because they would set FAULTLINE_* variables. */}}
{{- define "faultline.pod" -}}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "faultline.container" -}}
image: {{ include "faultline.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* What the values leave open, in proportion to the processes: a limit for one would kill several under load. */}}
{{- define "faultline.workerResources" -}}
{{- $count := int .processes }}
{{- $requests := dict "cpu" (toString $count) "memory" (printf "%dMi" (mul 512 $count)) }}
{{- $limits := dict "memory" (printf "%dMi" (add 384 (mul 640 $count))) }}
{{- toYaml (merge (deepCopy .resources) (dict "requests" $requests "limits" $limits)) }}
{{- end }}

{{- define "faultline.settings" -}}
- name: FAULTLINE_DATABASE_URL_FILE
  value: /run/secrets/faultline-database/{{ .Values.database.key }}
- name: FAULTLINE_TIMEZONE
  value: {{ .Values.timezone | quote }}
{{ include "faultline.kafka" . }}
{{- include "faultline.logStorage" . }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "faultline.logStorage" -}}
{{- with .Values.logStorage }}
{{- if .url }}
- name: FAULTLINE_LOG_STORE_URL
  value: {{ .url | quote }}
- name: FAULTLINE_LOG_STORE_ALLOW_HTTP
  value: {{ .allowHttp | quote }}
{{- if .endpoint }}
- name: AWS_ENDPOINT_URL
  value: {{ .endpoint | quote }}
{{- end }}
{{- if .region }}
- name: AWS_REGION
  value: {{ .region | quote }}
{{- end }}
{{- if .existingSecret }}
{{- range $name := list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $.Values.logStorage.existingSecret | quote }}, key: {{ $name }} }
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "faultline.kafka" -}}
- name: FAULTLINE_KAFKA_BOOTSTRAP_SERVERS
  value: {{ join "," .Values.kafka.bootstrapServers | quote }}
- name: FAULTLINE_KAFKA_TOPICS
  value: {{ join "," .Values.kafka.topics | quote }}
- name: FAULTLINE_KAFKA_GROUP_ID
  value: {{ .Values.kafka.groupId | quote }}
- name: FAULTLINE_KAFKA_SECURITY_PROTOCOL
  value: {{ .Values.kafka.securityProtocol }}
{{- with .Values.kafka.saslMechanism }}
- name: FAULTLINE_KAFKA_SASL_MECHANISM
  value: {{ . }}
- name: FAULTLINE_KAFKA_SASL_USERNAME
  value: {{ $.Values.kafka.saslUsername | quote }}
- name: FAULTLINE_KAFKA_SASL_PASSWORD_FILE
  value: /run/secrets/faultline-kafka/{{ $.Values.kafka.key }}
{{- end }}
{{- end }}

{{- define "faultline.mounts" -}}
- { name: tmp, mountPath: /tmp }
- { name: database, mountPath: /run/secrets/faultline-database, readOnly: true }
{{- include "faultline.kafkaMounts" . }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "faultline.kafkaMounts" -}}
{{- if .Values.kafka.existingSecret }}
- { name: kafka, mountPath: /run/secrets/faultline-kafka, readOnly: true }
{{- end }}
{{- end }}

{{- define "faultline.kafkaVolumes" -}}
{{- if .Values.kafka.existingSecret }}
- { name: kafka, secret: { secretName: {{ .Values.kafka.existingSecret }}, defaultMode: 0440 } }
{{- end }}
{{- end }}

{{- define "faultline.volumes" -}}
- { name: tmp, emptyDir: {} }
- { name: database, secret: { secretName: {{ .Values.database.existingSecret }}, defaultMode: 0440 } }
{{- include "faultline.kafkaVolumes" . }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The volume claim, or the empty folder, for a program's state. */}}
{{- define "faultline.claim" -}}
volumeClaimTemplates:
  - metadata: { name: state }
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .storageClass }}
      storageClassName: {{ . }}
      {{- end }}
      resources: { requests: { storage: {{ .size }} } }
{{- end }}
